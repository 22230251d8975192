"""Plans of controllers for another cluster: written down, sent in order, judged by the answers, gangs whole or not at all."""
