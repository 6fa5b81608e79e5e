package org.tampu.gateway;

import org.tampu.internal.gateway.AnsweredService;

/** A service that this program answers, until it is closed. */
public final class Service implements AutoCloseable {
    private final AnsweredService answered;

    Service(AnsweredService answered) {
        this.answered = answered;
    }

    /** Returns the incarnation of the session, which the answers have. It changes when the hub was restarted. */
    public String incarnation() {
        return answered.incarnation();
    }

    /** Ends the service. Questions that wait for their answers are refused. */
    @Override
    public void close() {
        answered.close();
    }
}
