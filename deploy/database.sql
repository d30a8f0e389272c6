-- backstay's own user and database. Neither can see Temporal's databases.
SET client_min_messages = warning;
-- The server must not write the password to its log when a statement fails.
SET log_min_error_statement = panic;
SELECT 'CREATE ROLE backstay LOGIN' WHERE NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'backstay') \gexec
ALTER ROLE backstay WITH LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE PASSWORD :'password';
SELECT 'CREATE DATABASE backstay OWNER backstay' WHERE NOT EXISTS (SELECT FROM pg_database WHERE datname = 'backstay') \gexec
REVOKE ALL ON DATABASE backstay FROM PUBLIC;
-- Without this, every user may connect to every database.
SELECT format('REVOKE CONNECT ON DATABASE %I FROM PUBLIC', datname) FROM pg_database WHERE datname <> 'backstay' AND datallowconn \gexec
