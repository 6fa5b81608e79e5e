package org.tampu.gateway;

/** Answers the questions of a service. */
@FunctionalInterface
public interface ServiceHandler {
    /**
     * Answers one question, on a thread of its own: at most 16 run at once. When it returns, the answer ends. An exception
     * refuses the question, with its message as the reason.
     */
    void answer(Question question) throws Exception;
}
