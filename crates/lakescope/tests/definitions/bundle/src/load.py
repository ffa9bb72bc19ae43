import sys
import time

print("loading", *sys.argv[1:], flush=True)
print("one row was odd", file=sys.stderr, flush=True)
time.sleep(float(sys.argv[2]) if len(sys.argv) > 2 and sys.argv[2][0].isdigit() else 0)
print("loaded", end="")
sys.exit(3 if "fail" in sys.argv else 0)
