// The gRPC service that signs workload certificates, for a client or a server of @grpc/grpc-js.
import { fromBinary, toBinary } from '@bufbuild/protobuf'
import type { MethodDefinition } from '@grpc/grpc-js'
import { ca } from '../../proto/index.ts'

export type CreateCertificateMethod = MethodDefinition<ca.IstioCertificateRequest, ca.IstioCertificateResponse>

const { IstioCertificateRequestSchema, IstioCertificateResponseSchema } = ca

export const certificateServiceDefinition: { readonly CreateCertificate: CreateCertificateMethod } = {
  CreateCertificate: {
    path: '/istio.v1.auth.IstioCertificateService/CreateCertificate',
    requestStream: false,
    responseStream: false,
    requestSerialize: (request) => Buffer.from(toBinary(IstioCertificateRequestSchema, request)),
    requestDeserialize: (bytes) => fromBinary(IstioCertificateRequestSchema, bytes),
    responseSerialize: (response) => Buffer.from(toBinary(IstioCertificateResponseSchema, response)),
    responseDeserialize: (bytes) => fromBinary(IstioCertificateResponseSchema, bytes),
  },
}
