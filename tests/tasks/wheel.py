"""Makes wheels of the package `shop`: FOLDER VERSION..."""

import sys
import zipfile

SOURCE = '''
version = {version!r}


def load():
    import sys

    print("shop", version, "loads", sys.argv[1:])


def plain():
    print("shop", version, "without an entry point")
'''


def make(folder, version):
    info = f"shop-{version}.dist-info"
    with zipfile.ZipFile(f"{folder}/shop-{version}-py3-none-any.whl", "w") as wheel:
        wheel.writestr("shop.py", SOURCE.format(version=version))
        wheel.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: shop\nVersion: {version}\n")
        wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nGenerator: lakescope\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr(f"{info}/entry_points.txt", "[console_scripts]\nload = shop:load\n")
        wheel.writestr(f"{info}/RECORD", "")


for version in sys.argv[2:]:
    make(sys.argv[1], version)
