"""Reports as a page of HTML: `_view.py` decides what is shown, `page.html.jinja` how."""
