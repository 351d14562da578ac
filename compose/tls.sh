#!/bin/sh
# Makes a certificate authority and the certificate of a server on loopback in /tls, once, and
# stays, so that its container counts as healthy.
set -eu
cd /tls
if [ ! -f ready ]; then
    openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 3650 \
        -subj "/CN=lockkit test authority" -keyout ca.key -out ca.pem
    openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes \
        -subj "/CN=localhost" -keyout server.key -out server.csr
    printf '%s\n' "subjectAltName=DNS:localhost,IP:127.0.0.1,IP:::1" \
        "keyUsage=digitalSignature" "extendedKeyUsage=serverAuth" >server.ext
    openssl x509 -req -in server.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 3650 \
        -extfile server.ext -out server.pem
    # The server runs as a user of its own. The key protects nothing but tests.
    chmod 644 server.key
    touch ready
fi
exec sleep infinity
