// The X.509 library, set up: it needs a reflection polyfill before it loads, and the platform's WebCrypto.
import 'reflect-metadata'
import { webcrypto } from 'node:crypto'
import * as x509 from '@peculiar/x509'

x509.cryptoProvider.set(webcrypto)

export { x509 }
