"""The documents as a site: pages that are made, pages that are written, and a check that every link leads somewhere."""
