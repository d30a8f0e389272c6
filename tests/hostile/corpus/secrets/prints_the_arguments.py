# holds: secret_kept
# ends: finished
import sys

print(sys.argv, sys.orig_argv, sys.executable, sys.flags, sys._xoptions, sys.path, sys.warnoptions)
return [sys.argv, sys.orig_argv]
