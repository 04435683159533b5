"""Found by processes that multiprocessing starts with the sys.path of a process that has called
`peal.horovod.install()`."""

from peal.horovod import install

install()
