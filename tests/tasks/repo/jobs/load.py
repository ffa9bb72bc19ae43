import sys
from pathlib import Path

print("loads", sys.argv[1:], Path("names.txt").read_text().strip())
