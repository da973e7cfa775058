"""Words that say nothing of anybody in particular: the common words of everyday English, folded.

How telling a run of words is, is the number of its words that are not among these (`telling`). The list is
of English, with the particles of Chinese and Japanese; in other languages every word counts as telling, and
more is then found rather than less.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

_ENGLISH: Final = """
a about above absolutely accept accepted across actually add added adding adult advice after afternoon again
against agent agents ago agree agreed agreeing ah ahead aint all allow almost alone along already alright
also although always am amazing an and another any anybody anymore anyone anything anyway anywhere
apparently apply appreciate appreciated appreciates apr april are area arent around as ask asked asking asks
assistant at attended aug august aunt available away awesome awful baby back bad based basically basis be
beat beautiful became because become becomes been before began begin behind being believe believes best bet
better between beyond big billion birthday bit body both bought break bring brings brother brothers brought
building built business busy but buy buying by bye call called came can cannot cant capture care case catch
cause certain certainly challenge challenges chance change changed changes chat chatted check cheers child
children choose church city class clean clear clearly close college come comes coming common company
complete completely computer congrats congratulations considering content continue continues control
conversation cook cooking cool copy cost could couldnt country couple course cover crazy create created
creating creative cup curious currently cut cute dad daily daughter day days dead deal dear dec december
decide decided decision deep definitely describe describes design determined develop development did didnt
died different difficult dinner discuss discussed discussing do doctor does doesnt dog doing done dont door
down dream dreams drive drop due during each earlier early earth easy eat eating effort eight either eleven
else encourage encourages end ended ending energy engage enjoy enjoyed enjoying enjoys enough enter entire
environment especially etc even evening event events ever every everybody everyday everyone everything
exactly example excellent except excited excitement exciting exercise expect experience experiences explain
exploring express expressed expresses extra eye eyes face fact failed fair fall family fan fantastic far
fast favorite favorites favourite fear feb february feedback feel feeling feelings feels felt few fifth
fifty fight figure fill film finally financial find finding finds fine finish finished first fit five floor
fly focus follow following food foot for forever forget form forty forward found four fourth free freedom
fresh fri friday friend friends from front full fun funny future gave get gets getting gift girl girls give
given gives giving glad glimpse go goal goals goes going gone gonna good goodbye gosh got gotta government
grateful gratitude great greatly ground group grow growing growth guess guidance guy guys had hadnt half
hand happen happened happening happens happiness happy hard hardly has hasnt have havent having he headed
health healthy hear heard heart heavy hed hell hello help helped helpful helping helps her here hes hey hi
high him himself his hit hold holding home hope hoped hopefully hopes hoping hot hour hours how however hows
huge hugs human hundred husband i id idea ideas if ill im image impact importance important impressed
improve in include included includes including increase incredible indeed information inspire inspired
inspires inspiring instead interest interested interesting interview into involved is isnt issue issues it
itd item itll its itself ive jan january job join journey joy jul july jun june just keen keep keeping keeps
kept kid kids kind kinda kitchen knew know knowing known knows lack large last late lately later law lead
leader learn learned learning least leave left less let lets lie life light like liked likes line list
little live living local log long look looked looking looks lost lot lots love loved lovely loves loving low
lucky lunch machine made main make makes making man many mar march market married material matter may maybe
me meal mean meaningful means meant medical meet meeting member members memories memory men mention
mentioned mentions message messages met method middle might million mind mine minute miss mom moment moments
mon monday money month months more morning most mother motivated motivating motivation mountain move movie
movies much music must mustnt mutual my myself name natural nature near nearby need needed neednt needs
negative nervous never new news next nice night nine no nobody none nope not note notes nothing nov november
now number oct october of off offered office oh ok okay old on once one ones only onto open opportunity or
order orders original other others ought our out over overall own owner page pain paper parents park part
particular particularly party pass passion passionate past pay peace people per perfect perhaps period
person personal phone photo photos physical pick picked picture piece place plan planned planning plans play
played playing please pleased pm point positive possible power practice prefer preference preferences
preferred prefers present president press pretty price private probably problem process product program
progress project projects proud provide public purpose push pushing put putting quality question quick
quickly quiet quite range rate rather reach read reading ready real realize really reason recent recently
recommend recommendation record recorded records red regular related relationship relax relaxing remarkable
remember remembers reminds report reported request require required research response responsible rest
result results return rewarding rich right rise risk road role room rough rule rules run running sad safe
said sale same sat saturday save saw say saying says school science season seat second security see seeing
seek seem seemed seems seen self send sense sep sept september serious serve service services set seven
several shall share shared sharing she shed shop short shot should shouldnt show showed shows sick side sign
similar simple since sincerely sister sit site situation six sixty size skill skills sleep slow small smile
so social society some somebody someone something sometimes somewhere son song soon sorry sort soul sound
sounds source space speak speaker special specific speech spend spending spent spoke sports spread staff
stage stand start started starting state stated statement states status stay step still stop store story
street strength stress stressful strong struggling student students study stuff style subject success such
suggested suggestion suggestions summary summer sun sunday super support supported supporting supportive
sure surprised sweet table take taken takes taking talk talked talking talks task tasks tax teach teacher
team tell telling tells ten test text than thank thankful thanks that thatll thats the their them themselves
then there these they theyd theyll theyre theyve thing things think thinking third thirty this those though
thought thoughtful thoughts thousand three thrilled through thu thur thurs thursday thus time times tip tips
title to today together told tomorrow tonight too took top topic total totally tough toward towards town
trade traditional training travel treat tree tried trip trouble true truly trust truth try trying tue tues
tuesday turn turned twelve twenty two type uh um under understand unique unit university until up update
updated updates upon us use used useful user users using usual usually value various very vibes view village
visit voice volunteer wait waiting walk wall want wanted wanting wants war warm was wasnt watch water way
ways we weather website wed wedding wednesday week weekend weeks weird welcome well went were werent weve
what whatever whats when whenever where wheres wherever whether which while white who whod whole whom whos
whose why wife will win window winter wish wished wishes with within without woman women wonder wonderful
wondering wont wood word words work worked working works world worry worth would wouldnt wow write wrong yay
yeah year years yellow yep yes yesterday yet you youd youll young your youre yours yourself youve yup zero
"""
_CHARACTERS: Final = (
    "的一是不了我你他她它们在有和就人都说要去会也到上下中大小为这那个来能好很多没么什吗呢吧啊过得着把被给对从又再还想看见时年月日点可以"
    "ぁあぃいぅうぇえぉおかがきぎくぐけげこごさざしじすずせぜそぞただちぢっつづてでとどなにぬねのはばぱひびぴ"
    "ふぶぷへべぺほぼぽまみむめもゃやゅゆょよらりるれろわをん"
)

COMMON: Final = frozenset((*_ENGLISH.split(), *_CHARACTERS))

SMALL: Final = 5
"""Numbers of fewer digits are ages, years, prices: nobody's in particular."""


def telling(run: Iterable[str]) -> int:
    """How many words of a run are neither common nor small numbers."""
    return sum(1 for word in run if is_telling(word))


def is_telling(word: str) -> bool:
    """Whether one word is neither common nor a small number."""
    return word not in COMMON and not (len(word) < SMALL and word.isdigit())
