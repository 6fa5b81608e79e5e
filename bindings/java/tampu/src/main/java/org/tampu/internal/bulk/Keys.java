package org.tampu.internal.bulk;

import java.io.ByteArrayOutputStream;
import java.math.BigInteger;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.security.GeneralSecurityException;
import java.security.KeyFactory;
import java.security.KeyPair;
import java.security.KeyPairGenerator;
import java.security.MessageDigest;
import java.security.PrivateKey;
import java.security.SecureRandom;
import java.security.interfaces.XECPublicKey;
import java.security.spec.NamedParameterSpec;
import java.security.spec.XECPublicKeySpec;
import java.util.Arrays;
import javax.crypto.KeyAgreement;
import javax.crypto.Mac;
import javax.crypto.spec.SecretKeySpec;

/**
 * Keys of a protected connection, from the receiver's token and an exchange of X25519 keys ({@code spec/bulk.md}).
 *
 * @param sender key and iv of the sender's records
 * @param receiver key and iv of the receiver's records
 * @param proof the receiver's proof that it knows the token
 */
public record Keys(Half sender, Half receiver, byte[] proof) {
    private static final String PURPOSE = "tampu bulk 1";
    private static final int VERSION = 1;
    private static final int NONCE = 32;
    private static final int PUBLIC = 32;
    /** Bytes of a KeyOffer, and of a KeyReply before its proof. */
    private static final int UNPROVEN = 2 + NONCE + PUBLIC;

    /** Key and iv of one direction. */
    public record Half(byte[] key, byte[] iv) {}

    /** A sender's half of the exchange, for one connection. */
    public static final class Offer {
        private final PrivateKey secret;
        private final byte[] payload;

        private Offer(KeyPair pair) {
            secret = pair.getPrivate();
            payload = message(pair);
        }

        /** Returns the payload of the KeyOffer. */
        public ByteBuffer payload() {
            return ByteBuffer.wrap(payload);
        }

        /**
         * Returns the keys that a receiver's KeyReply gives.
         *
         * @throws GeneralSecurityException if the receiver does not prove that it knows the token
         */
        public Keys accept(byte[] token, ByteBuffer reply) throws GeneralSecurityException {
            byte[] answer = bytes(reply);
            if (answer.length < UNPROVEN + 32 || version(answer) != VERSION) {
                throw new GeneralSecurityException("its key is of version " + version(answer) + "; update the older one of both ends");
            }
            Keys keys = agree(secret, Arrays.copyOfRange(answer, 2 + NONCE, UNPROVEN), token, transcript(payload, answer));
            if (!MessageDigest.isEqual(keys.proof, Arrays.copyOfRange(answer, UNPROVEN, UNPROVEN + 32))) {
                throw new GeneralSecurityException("its answer does not prove that it knows the token, or was changed on its way");
            }
            return keys;
        }
    }

    /** A receiver's answer: the keys, and the payload of the KeyReply. */
    public record Reply(Keys keys, ByteBuffer payload) {}

    /** Begins an exchange. */
    public static Offer offer() throws GeneralSecurityException {
        return new Offer(KeyPairGenerator.getInstance("X25519").generateKeyPair());
    }

    /** Answers a KeyOffer. */
    public static Reply reply(byte[] token, ByteBuffer offer) throws GeneralSecurityException {
        byte[] offered = bytes(offer);
        if (offered.length < UNPROVEN || version(offered) == 0) {
            throw new GeneralSecurityException("its key is of version " + version(offered) + "; update the older one of both ends");
        }
        KeyPair pair = KeyPairGenerator.getInstance("X25519").generateKeyPair();
        byte[] answer = message(pair);
        Keys keys = agree(pair.getPrivate(), Arrays.copyOfRange(offered, 2 + NONCE, UNPROVEN), token, transcript(offered, answer));
        return new Reply(keys, ByteBuffer.allocate(UNPROVEN + 32).put(answer).put(keys.proof).flip());
    }

    private static int version(byte[] message) {
        return message.length < 2 ? 0 : (message[0] & 0xff) | (message[1] & 0xff) << 8;
    }

    private static byte[] bytes(ByteBuffer payload) {
        byte[] all = new byte[payload.remaining()];
        payload.duplicate().get(all);
        return all;
    }

    private static byte[] message(KeyPair pair) {
        byte[] nonce = new byte[NONCE];
        new SecureRandom().nextBytes(nonce);
        ByteBuffer bytes = ByteBuffer.allocate(UNPROVEN).order(ByteOrder.LITTLE_ENDIAN).putShort((short) VERSION).put(nonce);
        byte[] number = ((XECPublicKey) pair.getPublic()).getU().toByteArray();
        for (int index = 0; index < PUBLIC; index++) {
            bytes.put(index < number.length ? number[number.length - 1 - index] : 0);
        }
        return bytes.array();
    }

    private static byte[] digest(byte[]... parts) throws GeneralSecurityException {
        MessageDigest digest = MessageDigest.getInstance("SHA-256");
        for (byte[] part : parts) {
            digest.update(part);
        }
        return digest.digest();
    }

    /** Returns the hash of both messages, without the proof. */
    public static byte[] transcript(byte[] offer, byte[] reply) throws GeneralSecurityException {
        return digest(PURPOSE.getBytes(StandardCharsets.US_ASCII), digest(offer), digest(Arrays.copyOf(reply, UNPROVEN)));
    }

    private static Keys agree(PrivateKey secret, byte[] there, byte[] token, byte[] transcript) throws GeneralSecurityException {
        byte[] number = new byte[PUBLIC];
        for (int index = 0; index < PUBLIC; index++) {
            number[index] = there[PUBLIC - 1 - index];
        }
        // The highest bit of the coordinate does not count.
        number[0] &= 0x7f;
        KeyAgreement agreement = KeyAgreement.getInstance("X25519");
        agreement.init(secret);
        XECPublicKeySpec of = new XECPublicKeySpec(NamedParameterSpec.X25519, new BigInteger(1, number));
        agreement.doPhase(KeyFactory.getInstance("X25519").generatePublic(of), true);
        return derive(agreement.generateSecret(), token, transcript);
    }

    /** Returns the keys that follow from a shared secret. */
    public static Keys derive(byte[] shared, byte[] token, byte[] transcript) throws GeneralSecurityException {
        ByteArrayOutputStream input = new ByteArrayOutputStream();
        input.writeBytes(token);
        input.writeBytes(shared);
        byte[] prk = hmac(transcript, input.toByteArray());
        byte[] proof = hmac(expand(prk, "confirm", 32), transcript);
        return new Keys(half(prk, "sender"), half(prk, "receiver"), proof);
    }

    private static Half half(byte[] prk, String name) throws GeneralSecurityException {
        return new Half(expand(prk, name + " key", 32), expand(prk, name + " iv", 12));
    }

    /** Expands a key as HKDF does; one block of the hash is enough. */
    private static byte[] expand(byte[] prk, String purpose, int length) throws GeneralSecurityException {
        byte[] info = (PURPOSE + " " + purpose).getBytes(StandardCharsets.US_ASCII);
        byte[] block = Arrays.copyOf(info, info.length + 1);
        block[info.length] = 1;
        return Arrays.copyOf(hmac(prk, block), length);
    }

    private static byte[] hmac(byte[] key, byte[] bytes) throws GeneralSecurityException {
        Mac mac = Mac.getInstance("HmacSHA256");
        mac.init(new SecretKeySpec(key, "HmacSHA256"));
        return mac.doFinal(bytes);
    }
}
