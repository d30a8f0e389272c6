"""Write the catalog to disk as files, describe tools, and document them."""
