"""What this installation of peal was built with: made by the build, from python/build.py.in."""

VERSION: str
TORCH_VERSION: str
