"""A machine that is a node of a cluster on another machine: it joins, and works, over that cluster's API."""
