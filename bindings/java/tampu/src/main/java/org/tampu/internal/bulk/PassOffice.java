package org.tampu.internal.bulk;

import java.io.IOException;
import java.time.Duration;
import java.util.Arrays;
import org.tampu.gateway.GatewayException;
import org.tampu.internal.gateway.Answers;
import org.tampu.internal.gateway.Session;
import org.tampu.internal.ring.Incarnation;

/**
 * Place where a sender gets passes of one receiver, through a session of the gateway. The receiver learns from the bus
 * on which host the gateway runs.
 */
final class PassOffice {
    private static final Duration WAIT = Duration.ofSeconds(3);
    private static final int LENGTH = 16;

    private final Session session;
    private final Incarnation process;
    private final long receiver;

    PassOffice(Session session, Incarnation process, long receiver) {
        this.session = session;
        this.process = process;
        this.receiver = receiver;
    }

    /** Asks for a pass of this sender; null where receivers give none, because nothing proves hosts. */
    byte[] ask(byte[] incarnation) throws IOException {
        byte[] from = process.toBytes();
        try {
            // Only the receiver's own process counts, which need not be the first that answers.
            Answers.OfAll answers = Answers.askAll(session, "bulk/pass/" + process + "/" + receiver, incarnation, WAIT);
            for (byte[] part : answers.parts()) {
                if (Arrays.equals(from, Arrays.copyOf(part, Answers.FROM)) && part.length == Answers.FROM + LENGTH) {
                    return Arrays.copyOfRange(part, Answers.FROM, part.length);
                }
            }
            if (answers.refusal() != null) {
                throw new IOException("it gives no pass: " + answers.refusal());
            }
            return null;
        } catch (GatewayException none) {
            if (none.code().equals("unanswered")) {
                return null;
            }
            throw new IOException("it gives no pass: " + none.getMessage(), none);
        }
    }
}
