"""From a call to a plan: everything that can be wrong with a call is found here, before anything runs."""
