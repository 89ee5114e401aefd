"""``python -m skprivacy``."""

import sys

from .cli import main

sys.exit(main())
