// The command line: finds the command, loads its file, runs it.
