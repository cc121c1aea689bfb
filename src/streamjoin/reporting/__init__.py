"""What a query did, as a page: plots, tables and the plan as a picture in one HTML file that needs no network."""
