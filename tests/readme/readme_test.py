"""The code in README.md and in the guides to groups and training is in examples, which are compiled and run. The documents
name only files that exist."""
import pathlib
import re
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text()


def code_blocks(text):
    return re.findall(r"```cpp\n(.*?)```", text, re.DOTALL)


def without_indentation(text):
    return "\n".join(line.strip() for line in text.strip().splitlines())


class TheGuides(unittest.TestCase):
    def test_show_parts_of_examples(self):
        examples = [without_indentation(path.read_text()) for path in (ROOT / "examples").glob("*.cpp")]
        for guide, least in (("groups.md", 10), ("stop.md", 0), ("train.md", 10)):
            blocks = code_blocks((ROOT / "docs/guide" / guide).read_text())
            self.assertGreater(len(blocks), least)
            for block in blocks:
                self.assertTrue(any(without_indentation(block) in example for example in examples), block)

    def test_describe_every_algorithm(self):
        sources = (ROOT / "peal/plan").glob("*.cpp")
        names = [name for path in sources for name in re.findall(r'Algorithm k\w+ = \{"(\w+)"', path.read_text())]
        self.assertGreater(len(names), 5)
        guide = (ROOT / "docs/guide/bench.md").read_text()
        for name in names:
            self.assertIn(f"\n| `{name}` | ", guide)

    def test_describe_every_field_of_job_files_and_every_flag(self):
        guide = (ROOT / "docs/guide/job_file.md").read_text()
        form = (ROOT / "peal/launch/job/peal_form.cpp").read_text()
        fields = re.findall(r'members\.(?:take|need)\("(\w+)"\)', form)
        self.assertGreater(len(fields), 25)
        for field in fields:
            self.assertRegex(guide, rf"\b{field}\b")
        flags = re.findall(r'GcloudFlag\{"(--[a-z-]+)"', (ROOT / "peal/launch/job/gcloud_flags.cpp").read_text())
        self.assertGreater(len(flags), 35)
        for flag in flags:
            self.assertRegex(guide, rf"`{flag}[` ]")


class TheReadme(unittest.TestCase):
    def test_shows_the_examples_that_are_compiled(self):
        for shown, name in zip(code_blocks(README), ("readme.cpp", "readme_trainer.cpp"), strict=True):
            comment, program = (ROOT / "examples" / name).read_text().split("\n", 1)
            self.assertTrue(comment.startswith("//"))
            self.assertEqual(shown, program)

    def test_the_index_lists_every_decision(self):
        index = (ROOT / "docs/decisions/README.md").read_text()
        for record in (ROOT / "docs/decisions").glob("0*.md"):
            self.assertIn(f"]({record.name})", index)

    def test_names_only_files_that_exist(self):
        documents = [ROOT / name for name in ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md")]
        documents += (ROOT / "docs").rglob("*.md")
        for document in documents:
            text = document.read_text()
            links = re.findall(r"\]\(([^)#:]+)\)", re.sub(r"```.*?```", "", text, flags=re.DOTALL))
            for link in links:
                self.assertTrue((document.parent / link).exists(), f"{document}: {link}")
            for name in re.findall(r"`([\w./-]+/[\w-]+\.(?:h|cpp|txt|cmake)|\.?/?scripts/\w+)`", text):
                self.assertTrue((ROOT / name).exists() or (ROOT / "peal" / name).exists(),
                                f"{document}: {name}")


if __name__ == "__main__":
    unittest.main()
