"""What this installation of peal was built with: made by the build, from python/build.py.in."""

TORCH_VERSION: str
