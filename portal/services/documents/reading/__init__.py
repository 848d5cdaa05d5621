"""Documents as readers see them: pages, images, and Markdown as web pages."""
