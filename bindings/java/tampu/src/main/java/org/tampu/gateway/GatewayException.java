package org.tampu.gateway;

import java.io.IOException;

/** A refusal of a hub, or the end of a session. */
public final class GatewayException extends IOException {
    private static final long serialVersionUID = 1;

    private final String code;

    /** Makes an exception with a code of {@code spec/wire/gateway.md} and words for people. */
    public GatewayException(String code, String message) {
        super(message);
        this.code = code;
    }

    /** Returns the reason as a word: {@code denied}, {@code limit}, {@code bad}, {@code unanswered}, ... */
    public String code() {
        return code;
    }
}
