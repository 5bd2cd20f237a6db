#include "server/rpc/tls.h"

#include <time.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

#include "absl/strings/str_cat.h"
#include "grpcpp/security/tls_certificate_provider.h"
#include "grpcpp/security/tls_credentials_options.h"
#include "openssl/bio.h"
#include "openssl/err.h"
#include "openssl/pem.h"
#include "openssl/x509.h"

namespace sliceplan::rpc {
namespace {

namespace experimental = grpc::experimental;

struct Free {
  void operator()(BIO* bio) const { BIO_free(bio); }
  void operator()(X509* certificate) const { X509_free(certificate); }
  void operator()(EVP_PKEY* key) const { EVP_PKEY_free(key); }
};
template <typename Type>
using Owned = std::unique_ptr<Type, Free>;

// Instead of OpenSSL's own, which asks at the terminal.
int NoPassword(char*, int, int, void*) { return -1; }

absl::Status Refuse(absl::string_view what, const std::string& path) {
  ERR_clear_error();
  return absl::InvalidArgumentError(absl::StrCat(what, ": ", path));
}

Owned<X509> FirstCertificate(const std::string& path) {
  const Owned<BIO> file(BIO_new_file(path.c_str(), "r"));
  return Owned<X509>(file == nullptr ? nullptr : PEM_read_bio_X509(file.get(), nullptr, &NoPassword, nullptr));
}

absl::StatusOr<absl::Time> EndOf(const X509* certificate) {
  tm utc = {};
  if (ASN1_TIME_to_tm(X509_get0_notAfter(certificate), &utc) != 1) return absl::InvalidArgumentError("no end");
  return absl::FromTM(utc, absl::UTCTimeZone());
}

unsigned WholeSeconds(absl::Duration duration) {
  return static_cast<unsigned>(
      std::clamp<int64_t>(absl::ToInt64Seconds(duration), 1, std::numeric_limits<int32_t>::max()));
}

}  // namespace

absl::StatusOr<absl::Time> CheckTlsFiles(const TlsFiles& files, absl::Time now) {
  if (files.certificate.empty() || files.key.empty()) {
    return absl::InvalidArgumentError("--tls_cert and --tls_key go together, and --tls_client_ca needs both");
  }
  const Owned<X509> certificate = FirstCertificate(files.certificate);
  if (certificate == nullptr) return Refuse("no certificate in PEM can be read", files.certificate);
  const Owned<BIO> key_file(BIO_new_file(files.key.c_str(), "r"));
  const Owned<EVP_PKEY> key(
      key_file == nullptr ? nullptr : PEM_read_bio_PrivateKey(key_file.get(), nullptr, &NoPassword, nullptr));
  if (key == nullptr) return Refuse("no key without a password in PEM can be read", files.key);
  if (X509_check_private_key(certificate.get(), key.get()) != 1) {
    return Refuse(absl::StrCat("the key does not belong to the certificate ", files.certificate), files.key);
  }
  if (!files.client_authorities.empty() && FirstCertificate(files.client_authorities) == nullptr) {
    return Refuse("no certificate in PEM can be read", files.client_authorities);
  }
  const absl::StatusOr<absl::Time> end = EndOf(certificate.get());
  if (!end.ok()) return Refuse("the certificate has no end", files.certificate);
  if (*end <= now) return Refuse(absl::StrCat("the certificate ended at ", absl::FormatTime(*end)), files.certificate);
  return *end;
}

std::shared_ptr<grpc::ServerCredentials> MakeTlsCredentials(const TlsFiles& files) {
  experimental::TlsServerCredentialsOptions options(std::make_shared<experimental::FileWatcherCertificateProvider>(
      files.key, files.certificate, files.client_authorities, WholeSeconds(files.refresh)));
  options.watch_identity_key_cert_pairs();
  if (files.client_authorities.empty()) {
    options.set_cert_request_type(GRPC_SSL_DONT_REQUEST_CLIENT_CERTIFICATE);
  } else {
    options.watch_root_certs();
    options.set_cert_request_type(GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY);
  }
  return experimental::TlsServerCredentials(options);
}

}  // namespace sliceplan::rpc
