SELECT made.name, column_of.name FROM sqlite_master AS made, pragma_table_info(made.name) AS column_of
WHERE made.type = 'table'
