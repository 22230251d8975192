"""What a container is started with: image, devices, network, users, limits and wall, put together to one order for its shim."""
