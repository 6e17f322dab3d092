; What the robot can do in a home, one action for each way in which a skill is used.
;
; The skill of an action is the beginning of its name: navigate_to_goal and navigate_to_fridge are both `navigate`.
; There is one robot, so it is no parameter. Types are leaf types: the parser knows no hierarchy of types.
;
; Opening asks for nothing but a free hand, so that a door that stands ajar, neither opened nor closed, can be opened.
;
; The robot is at one thing, or on its way (`robot_free`). Every skill but navigate moves the base as it likes, so after
; one of them the robot is at nothing in particular and has to navigate before the next.
(define (domain home)
  (:requirements :strips :typing)

  (:types movable goal cabinet fridge)

  (:predicates
    (at ?o - movable ?g - goal)          ; the object lies at its goal
    (in ?x - (either movable goal) ?c - (either cabinet fridge))  ; inside the drawer or fridge, open or closed
    (in_the_open ?x - (either movable goal))                      ; inside nothing that can be closed
    (holding ?o - movable)
    (hand_empty)
    (opened ?c - (either cabinet fridge))
    (closed ?c - (either cabinet fridge))
    (robot_at ?x - (either movable goal cabinet fridge))
    (robot_free))

  (:action navigate_to_object
    :parameters (?o - movable)
    :precondition (and (robot_free))
    :effect (and (robot_at ?o) (not (robot_free))))

  (:action navigate_to_goal
    :parameters (?g - goal)
    :precondition (and (robot_free))
    :effect (and (robot_at ?g) (not (robot_free))))

  (:action navigate_to_cabinet
    :parameters (?c - cabinet)
    :precondition (and (robot_free))
    :effect (and (robot_at ?c) (not (robot_free))))

  (:action navigate_to_fridge
    :parameters (?f - fridge)
    :precondition (and (robot_free))
    :effect (and (robot_at ?f) (not (robot_free))))

  (:action pick
    :parameters (?o - movable)
    :precondition (and (robot_at ?o) (in_the_open ?o) (hand_empty))
    :effect (and (holding ?o) (robot_free)
                 (not (hand_empty)) (not (in_the_open ?o)) (not (robot_at ?o))))

  (:action pick_from_cabinet
    :parameters (?o - movable ?c - cabinet)
    :precondition (and (robot_at ?o) (in ?o ?c) (opened ?c) (hand_empty))
    :effect (and (holding ?o) (robot_free)
                 (not (hand_empty)) (not (in ?o ?c)) (not (robot_at ?o))))

  (:action pick_from_fridge
    :parameters (?o - movable ?f - fridge)
    :precondition (and (robot_at ?o) (in ?o ?f) (opened ?f) (hand_empty))
    :effect (and (holding ?o) (robot_free)
                 (not (hand_empty)) (not (in ?o ?f)) (not (robot_at ?o))))

  (:action place
    :parameters (?o - movable ?g - goal)
    :precondition (and (robot_at ?g) (in_the_open ?g) (holding ?o))
    :effect (and (at ?o ?g) (in_the_open ?o) (hand_empty) (robot_free)
                 (not (holding ?o)) (not (robot_at ?g))))

  (:action place_in_cabinet
    :parameters (?o - movable ?g - goal ?c - cabinet)
    :precondition (and (robot_at ?g) (in ?g ?c) (opened ?c) (holding ?o))
    :effect (and (at ?o ?g) (in ?o ?c) (hand_empty) (robot_free)
                 (not (holding ?o)) (not (robot_at ?g))))

  (:action place_in_fridge
    :parameters (?o - movable ?g - goal ?f - fridge)
    :precondition (and (robot_at ?g) (in ?g ?f) (opened ?f) (holding ?o))
    :effect (and (at ?o ?g) (in ?o ?f) (hand_empty) (robot_free)
                 (not (holding ?o)) (not (robot_at ?g))))

  (:action open_cabinet
    :parameters (?c - cabinet)
    :precondition (and (robot_at ?c) (hand_empty))
    :effect (and (opened ?c) (robot_free) (not (closed ?c)) (not (robot_at ?c))))

  (:action close_cabinet
    :parameters (?c - cabinet)
    :precondition (and (robot_at ?c) (hand_empty))
    :effect (and (closed ?c) (robot_free) (not (opened ?c)) (not (robot_at ?c))))

  (:action open_fridge
    :parameters (?f - fridge)
    :precondition (and (robot_at ?f) (hand_empty))
    :effect (and (opened ?f) (robot_free) (not (closed ?f)) (not (robot_at ?f))))

  (:action close_fridge
    :parameters (?f - fridge)
    :precondition (and (robot_at ?f) (hand_empty))
    :effect (and (closed ?f) (robot_free) (not (opened ?f)) (not (robot_at ?f))))
)
