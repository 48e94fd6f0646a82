"""SQL: column types, clients, and the host process for engines that live inside a process."""
