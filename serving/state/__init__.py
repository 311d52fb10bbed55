"""State that the processes of a service share on one machine: folder, their records, settings in the environment."""
