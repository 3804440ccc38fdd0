"""Tables of MySQL and MariaDB in pipelines."""
