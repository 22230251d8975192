"""Jobs that a controller makes for an object of another kind, such as a JobFlow or a CronJob."""
