"""Pages of PDFs and pictures as text: columns, headings, running lines, text recognition."""
