"""Tables outside of memory: lazy polars, Dask, Spark, and files.

`fit` counts rows where they are, in one aggregation; if columns are passed through, it also reads
some rows of these and of S, to judge them. `transform` returns a lazy frame of the same kind. Each
library is imported in one module, when one of its frames is passed.
"""
