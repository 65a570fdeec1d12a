/** A certificate that signs itself, for `mail.example.test` alone; it protects nothing. */
export const testCertificate: { readonly cert: string; readonly key: string } = {
  key: `-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgw/0TYigGzgevXVk8
v7W1a/KwxAxUcD2eqL8vM24qGDChRANCAAR1nk3RlfAXqnu2DYvOb6kMylzzR/Cr
Jrn/jajRLVXV2E9fJwB6ltoORLRDCYh9i71fqx8umnTx2c6d46mx5Kvi
-----END PRIVATE KEY-----
`,
  cert: `-----BEGIN CERTIFICATE-----
MIIBrTCCAVOgAwIBAgIUIgB3W0/+zb0Xv9dnfPPG0LOrJSMwCgYIKoZIzj0EAwIw
HDEaMBgGA1UEAwwRbWFpbC5leGFtcGxlLnRlc3QwIBcNMjYxMTMwMjAwMDI1WhgP
MjEyNjExMDYyMDAwMjVaMBwxGjAYBgNVBAMMEW1haWwuZXhhbXBsZS50ZXN0MFkw
EwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEdZ5N0ZXwF6p7tg2Lzm+pDMpc80fwqya5
/42o0S1V1dhPXycAepbaDkS0QwmIfYu9X6sfLpp08dnOneOpseSr4qNxMG8wHQYD
VR0OBBYEFNzvpTlCZ7CPPunVjpxdZ6cQdNMyMB8GA1UdIwQYMBaAFNzvpTlCZ7CP
PunVjpxdZ6cQdNMyMA8GA1UdEwEB/wQFMAMBAf8wHAYDVR0RBBUwE4IRbWFpbC5l
eGFtcGxlLnRlc3QwCgYIKoZIzj0EAwIDSAAwRQIgfViWqLCL3lQkbbRCJycQgzP0
yw19TGAuSWSg6C33o5YCIQC0KBM8Jeyl3mGGmuiBHKKyDNYXnsMHfIvq3KYO6DyY
EA==
-----END CERTIFICATE-----
`,
}
