"""Values that shells and engines change. The tests of all runners send them through the environment of a job."""
import json

NASTY = {
    "SPACES": "  two  spaces at both ends  ",
    "QUOTES": """'"'"'""",
    "HOME_REFERENCE": "$HOME ${HOME} $(HOME) $$(HOME) $$ `id` $(id)",
    "REFERENCE": "$(RANK) and $(SPACES)",
    "BACKSLASH": "a\\nb\\",
    "COMMA": "a,b=c,d",
    "NEWLINE": "first\nsecond\r\nthird\n",
    "COUNT": "64(x2)",
    "JSON": json.dumps({"a": [1, {"b": "c\"d"}], "e": None}),
    "SEMICOLON": "a; echo b & echo c | cat > d",
    "HASH": "# no comment",
    "EMPTY": "",
    "LONG": "x" * 100_000,
    "WITH.DOT": "dot, $HOME and \"quotes\"",
    "UNICODE": "Größe 🔔 \u2028 \x7f \t",
    "PERCENT": "%s %n {} {{}}",
    "GLOB": "* ? [a] ~ !",
}
# A program in Python that prints the variables named by its arguments, as one line of JSON.
SHOW = "import json, os, sys; print(json.dumps({n: os.environ.get(n) for n in sys.argv[1:]}), flush=True)"
