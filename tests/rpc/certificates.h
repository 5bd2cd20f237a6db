// Certificates for tests: authorities, and what they sign.
#ifndef SLICEPLAN_TESTS_RPC_CERTIFICATES_H_
#define SLICEPLAN_TESTS_RPC_CERTIFICATES_H_

#include <memory>
#include <string>

#include "openssl/bio.h"
#include "openssl/evp.h"
#include "openssl/pem.h"
#include "openssl/x509.h"
#include "openssl/x509v3.h"

namespace sliceplan::rpc {

// A key with its certificate.
class Identity {
 public:
  // Signed by itself.
  static Identity Authority(const std::string& name) { return Identity(name, nullptr, "critical,CA:TRUE", "", kDay); }
  // For servers `alternative` is "DNS:localhost" or "IP:127.0.0.1"; for clients it may be empty. Negative `seconds`:
  // expired.
  Identity Issue(const std::string& name, const std::string& alternative, long seconds = kDay) const {
    return Identity(name, this, "CA:FALSE", alternative, seconds);
  }

  std::string certificate() const {
    return Pem([&](BIO* bio) { PEM_write_bio_X509(bio, certificate_.get()); });
  }
  std::string key() const {
    return Pem([&](BIO* bio) { PEM_write_bio_PrivateKey(bio, key_.get(), nullptr, nullptr, 0, nullptr, nullptr); });
  }
  std::string key_with_password() const {
    return Pem([&](BIO* bio) {
      unsigned char password[] = "password";
      PEM_write_bio_PrivateKey(bio, key_.get(), EVP_aes_128_cbc(), password, 8, nullptr, nullptr);
    });
  }

 private:
  static constexpr long kDay = 24 * 60 * 60;

  Identity(const std::string& name, const Identity* issuer, const char* constraints, const std::string& alternative,
           long seconds)
      : key_(EVP_EC_gen("P-256"), &EVP_PKEY_free), certificate_(X509_new(), &X509_free) {
    X509* const certificate = certificate_.get();
    X509_set_version(certificate, X509_VERSION_3);
    static long serial = 0;
    ASN1_INTEGER_set(X509_get_serialNumber(certificate), ++serial);
    X509_gmtime_adj(X509_getm_notBefore(certificate), -2 * kDay);
    X509_gmtime_adj(X509_getm_notAfter(certificate), seconds);
    X509_set_pubkey(certificate, key_.get());
    X509_NAME* const subject = X509_get_subject_name(certificate);
    X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_ASC, reinterpret_cast<const unsigned char*>(name.c_str()), -1,
                               -1, 0);
    X509_set_issuer_name(certificate, issuer == nullptr ? subject : X509_get_subject_name(issuer->certificate_.get()));
    Extend(NID_basic_constraints, constraints);
    if (!alternative.empty()) Extend(NID_subject_alt_name, alternative.c_str());
    X509_sign(certificate, issuer == nullptr ? key_.get() : issuer->key_.get(), EVP_sha256());
  }

  void Extend(int kind, const char* value) {
    X509_EXTENSION* const extension = X509V3_EXT_conf_nid(nullptr, nullptr, kind, value);
    X509_add_ext(certificate_.get(), extension, -1);
    X509_EXTENSION_free(extension);
  }

  template <typename Write>
  static std::string Pem(Write write) {
    const std::unique_ptr<BIO, decltype(&BIO_free_all)> bio(BIO_new(BIO_s_mem()), &BIO_free_all);
    write(bio.get());
    char* data = nullptr;
    const long size = BIO_get_mem_data(bio.get(), &data);
    return std::string(data, static_cast<size_t>(size));
  }

  std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)> key_;
  std::unique_ptr<X509, decltype(&X509_free)> certificate_;
};

}  // namespace sliceplan::rpc

#endif  // SLICEPLAN_TESTS_RPC_CERTIFICATES_H_
