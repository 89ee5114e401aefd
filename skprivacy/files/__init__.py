"""Tables in files, of any size: CSV, TSV and Parquet, compressed or piped."""
