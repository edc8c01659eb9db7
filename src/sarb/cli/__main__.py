"""``python -m sarb.cli`` is ``sarb``."""

from sarb.cli.app import main

main()
