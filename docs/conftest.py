"""The examples in the pages are tests; what the build makes or runs itself is not."""

import matplotlib

matplotlib.use("agg")

collect_ignore = ["conf.py", "gallery_options.py"]
collect_ignore_glob = ["pictures/*", "auto_examples/*", "_build/*", "plot_directive/*"]
