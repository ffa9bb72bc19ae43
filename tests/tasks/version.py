import shop

print("plain", shop.version)
