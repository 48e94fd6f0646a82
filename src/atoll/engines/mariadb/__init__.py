"""The engine `mariadb`."""
