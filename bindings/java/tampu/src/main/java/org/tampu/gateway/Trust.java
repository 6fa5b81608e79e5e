package org.tampu.gateway;

import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.GeneralSecurityException;
import java.security.KeyStore;
import java.security.cert.Certificate;
import java.security.cert.CertificateFactory;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import javax.net.ssl.SSLContext;
import javax.net.ssl.TrustManager;
import javax.net.ssl.TrustManagerFactory;
import javax.net.ssl.X509TrustManager;

/** Trust in the authority of a domain, which signs the certificates of its hosts. */
public final class Trust {
    private Trust() {}

    /**
     * Returns a context that trusts further certificates beside those of the JDK.
     *
     * @param certificates a file of certificates (PEM), or the directory that has the domain's {@code authority.crt}
     * @throws IOException if there are none
     */
    public static SSLContext certificates(Path certificates) throws IOException {
        Path file = Files.isDirectory(certificates) ? certificates.resolve("authority.crt") : certificates;
        try (InputStream in = Files.newInputStream(file)) {
            Collection<? extends Certificate> more = CertificateFactory.getInstance("X.509").generateCertificates(in);
            if (more.isEmpty()) {
                throw new IOException(file + " has no certificate");
            }
            List<Certificate> all = new ArrayList<>(more);
            for (TrustManager manager : managers(null)) {
                if (manager instanceof X509TrustManager known) {
                    all.addAll(List.of(known.getAcceptedIssuers()));
                }
            }
            KeyStore store = KeyStore.getInstance(KeyStore.getDefaultType());
            store.load(null, null);
            for (Certificate one : all) {
                store.setCertificateEntry(Integer.toString(store.size()), one);
            }
            SSLContext context = SSLContext.getInstance("TLS");
            context.init(null, managers(store), null);
            return context;
        } catch (GeneralSecurityException wrong) {
            throw new IOException("invalid certificates in " + file + ": " + wrong.getMessage(), wrong);
        }
    }

    /** Returns the managers for the certificates of a store, or for those of the JDK. */
    private static TrustManager[] managers(KeyStore store) throws GeneralSecurityException {
        TrustManagerFactory factory = TrustManagerFactory.getInstance(TrustManagerFactory.getDefaultAlgorithm());
        factory.init(store);
        return factory.getTrustManagers();
    }
}
