import sys

print("got", sys.argv[1:])
