"""From the connection to the handler and back: paths, bodies, parameters, who asks, what is answered."""
