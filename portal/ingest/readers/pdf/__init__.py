"""Parts of the PDF reader, which run in its confined process."""
