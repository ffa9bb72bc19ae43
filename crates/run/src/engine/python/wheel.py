"""Runs an entry point of an installed package: PACKAGE ENTRY_POINT ARGUMENTS..."""

import importlib
import sys
from importlib import metadata

package, entry_point = sys.argv[1:3]
# The program sees its own arguments, as if it had been started by its name.
sys.argv = [entry_point, *sys.argv[3:]]



def found():
    try:
        points = metadata.distribution(package).entry_points
    except metadata.PackageNotFoundError:
        points = ()
    for point in points:
        if point.name == entry_point:
            return point.load()
    module = importlib.import_module(package.replace("-", "_"))
    try:
        return getattr(module, entry_point)
    except AttributeError:
        names = sorted({point.name for point in points})
        sys.exit(
            f"package {package} has neither an entry point nor a function {entry_point}"
            + (f"; it has {', '.join(names)}" if names else "")
        )


sys.exit(found()())
