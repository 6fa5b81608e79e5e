package org.tampu.internal.bulk;

import java.io.IOException;
import org.tampu.internal.ring.Incarnation;

/** The incarnation of this process, as the handshake carries it. */
public final class Life {
    private Life() {}

    /** Returns the 16 bytes of a new one. */
    public static byte[] create() throws IOException {
        return Incarnation.create().toBytes();
    }
}
