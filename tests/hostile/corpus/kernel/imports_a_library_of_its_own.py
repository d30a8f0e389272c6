# holds: no_breach
# ends: any
import importlib.machinery
import importlib.util
import shutil
import sys
import sysconfig

folder = next(path for path in sys.path if path.endswith("lib-dynload"))
name = "_zoneinfo" + sysconfig.get_config_var("EXT_SUFFIX")
shutil.copyfile(folder + "/" + name, "/tmp/own.so")
loader = importlib.machinery.ExtensionFileLoader("_zoneinfo", "/tmp/own.so")
try:
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("_zoneinfo", loader))
    loader.exec_module(module)
    proved("library")
except ImportError as error:
    print(error)
return "tried"
