//! Certificate authority and server certificate, with Ed25519 keys.
//!
//! Any 32 bytes are a valid Ed25519 key, and signatures with such a key need no random numbers. So the same seed
//! results in the same certificates.

use super::secrets::Secrets;
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa, KeyPair,
    KeyUsagePurpose, SanType,
};
use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

/// Bytes before the 32 bytes of an Ed25519 key in PKCS #8 (RFC 8410, section 7).
const PKCS8_PREFIX: [u8; 16] =
    [0x30, 0x2e, 0x02, 0x01, 0x00, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x04, 0x22, 0x04, 0x20];

pub(super) struct Authority(CertifiedIssuer<'static, KeyPair>);

impl Authority {
    pub(super) fn new(name: &str, secrets: &Secrets) -> Result<Self, rcgen::Error> {
        let mut parameters = CertificateParams::default();
        parameters.distinguished_name.push(DnType::CommonName, format!("memkube {name}"));
        parameters.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        parameters.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        let key = KeyPair::try_from(&key(secrets, "authority"))?;
        Ok(Self(CertifiedIssuer::self_signed(parameters, key)?))
    }

    /// Certificate of the authority as PEM, for clients.
    pub(super) fn pem(&self) -> String {
        self.0.pem()
    }

    /// TLS configuration of a server at `address` of this machine.
    pub(super) fn server(&self, secrets: &Secrets, address: IpAddr) -> Result<Arc<ServerConfig>, super::error::Error> {
        let key = key(secrets, "server");
        let mut parameters = CertificateParams::new(vec!["localhost".to_owned()])?;
        for address in [address, Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()] {
            parameters.subject_alt_names.push(SanType::IpAddress(address));
        }
        parameters.distinguished_name.push(DnType::CommonName, "memkube");
        parameters.use_authority_key_identifier_extension = true;
        parameters.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        parameters.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        let certificate = parameters.signed_by(&KeyPair::try_from(&key)?, &self.0)?;
        let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_single_cert(vec![certificate.der().clone()], PrivateKeyDer::Pkcs8(key))?;
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Arc::new(config))
    }
}

fn key(secrets: &Secrets, purpose: &str) -> PrivatePkcs8KeyDer<'static> {
    let mut document = PKCS8_PREFIX.to_vec();
    document.extend(secrets.bytes("key", purpose));
    document.into()
}
