"""Addresses of the pages, a module for each part of the site; the API's are in `memory.urls`."""
