"""Function words of languages, which say nothing about the subject of a text or a question."""

from __future__ import annotations

STOP_WORDS: dict[str, str] = {
    # The last line of some languages has the parts of contractions split at the apostrophe.
    "english": """
        i me my mine myself we us our ours ourselves you your yours yourself yourselves he him his himself she her hers
        herself it its itself they them their theirs themselves who whom whose whoever
        a an the this that these those each every either neither both all any some such no other others another same own
        what whatever which whichever when whenever where wherever why how whether
        about above across after against along among amongst around at before behind below beneath beside besides
        between beyond by despite down during except for from in inside into near of off on onto out outside over per
        since through throughout till to toward towards under until unto up upon via with within without
        and or but nor yet so if unless because as than then though although while whereas thus therefore hence
        not only also too very just even ever again once here there now more most much many few less least quite rather
        am is are was were be been being do does did doing done have has had having can cannot could may might must
        ought shall should will would
        s t d ll ve re m don doesn didn isn aren wasn weren won wouldn couldn shouldn hasn haven hadn ain mustn mightn
        needn shan
    """,
    "german": """
        ich mich mir du dich dir er ihn ihm sie es wir uns ihr euch ihnen sich man selbst einander
        mein meine meinem meinen meiner meines dein deine deinem deinen deiner deines sein seine seinem seinen seiner
        seines ihre ihrem ihren ihrer ihres unser unsere unserem unseren unserer unseres euer eure eurem euren eurer
        der die das den dem des ein eine einem einen einer eines kein keine keinem keinen keiner keines dieser diese
        dieses diesem diesen jener jene jenes jenem jenen jeder jede jedes jedem jeden alle allem allen aller alles
        mancher manche manches manchem manchen solcher solche solches solchem solchen deren dessen
        wer wen wem wessen was welcher welche welches welchem welchen wie wieviel wo woher wohin wann warum weshalb
        wieso womit wofür wodurch worin worauf wozu
        ab an am ans auf aufs aus außer bei beim bis durch für gegen gegenüber hinter im in ins mit mittels nach neben
        ohne seit über um unter vom von vor während wegen zu zum zur zwischen
        und oder aber denn sondern dass daß ob weil wenn als da damit obwohl sobald sowie sowohl falls indem
        also auch noch nur schon so sehr dann doch hier dort nicht nichts ja nein mehr etwa bereits jedoch nun je dabei
        dazu davon daran darauf darin darüber dafür dagegen dadurch danach etwas
        bin bist ist sind seid war warst waren wart gewesen sei seien wäre wären werde wirst wird werden werdet wurde
        wurden worden würde würden habe hast hat haben habt hatte hatten hätte hätten gehabt kann kannst können könnt
        konnte konnten könnte könnten muss muß müssen musste mussten müsste soll sollen sollte sollten will wollen
        wollte darf dürfen durfte mag mögen möchte möchten
        s
    """,
    "french": """
        je me moi tu te toi il le lui elle la on nous vous ils les leur elles eux se soi y en même mêmes
        mon ma mes ton ta tes son sa ses notre nos votre vos leurs mien mienne tien tienne sien sienne
        un une des du de au aux ce cet cette ces ceci cela ça celui celle ceux celles ci là aucun aucune chaque
        plusieurs quelque quelques tout toute tous toutes tel telle tels telles autre autres certain certaine certains
        certaines
        qui que quoi dont où quel quelle quels quelles lequel laquelle lesquels lesquelles duquel auquel combien comment
        pourquoi quand
        à après avant avec chez contre dans depuis derrière dès devant durant entre envers hors jusque malgré outre par
        parmi pendant pour près sans sauf selon sous sur vers via
        et ou mais donc or ni car si comme lorsque puisque quoique tandis parce afin ainsi alors aussi encore déjà très
        trop peu plus moins bien non oui ne pas point jamais ici puis voici voilà
        être suis es est sommes êtes sont étais était étions étaient été étant fut furent sera seront serait seraient
        soit soient avoir ai as a avons avez ont avais avait avaient eu ayant aura auront aurait auraient ait aient peut
        peuvent pouvait doit doivent faut
        c d j l m n s t qu jusqu lorsqu puisqu quelqu aujourd
    """,
    "spanish": """
        yo me mí conmigo tú te ti contigo él lo le ella la ello se sí nosotros nosotras nos vosotros vosotras os ellos
        los les ellas las usted ustedes
        mi mis mío mía míos mías tu tus tuyo tuya tuyos tuyas su sus suyo suya suyos suyas nuestro nuestra nuestros
        nuestras vuestro vuestra vuestros vuestras
        el un una unos unas uno este esta esto estos estas ese esa eso esos esas aquel aquella aquello aquellos aquellas
        algún alguno alguna algunos algunas ningún ninguno ninguna cada cualquier cualquiera todo toda todos todas
        otro otra otros otras mismo misma mismos mismas tal tales varios varias
        que qué quien quién quienes quiénes cual cuál cuales cuáles cuyo cuya cuyos cuyas cuanto cuánto cuánta cuántos
        cuántas cuando cuándo como cómo donde dónde adónde
        a al ante bajo con contra de del desde durante en entre hacia hasta mediante para por según sin sobre tras
        y e o u ni pero sino mas porque pues si aunque mientras así también tampoco además ya aún todavía muy más
        menos tan tanto no aquí allí ahí entonces luego sólo solo
        ser soy eres es somos sois son era eras éramos eran fue fui fueron fuera sea sean será serán sería siendo sido
        estoy está estamos están estaba estaban estar haber he has ha hemos han había habían hay hubo haya tiene tienen
        puede pueden podía debe deben
    """,
    "italian": """
        io me mi tu te ti egli lui lo gli ella lei la le esso essa noi ci voi vi essi esse loro li si sé ne stesso
        stessa stessi stesse
        mio mia miei mie tuo tua tuoi tue suo sua suoi sue nostro nostra nostri nostre vostro vostra vostri vostre
        il i un uno una questo questa questi queste quello quella quelli quelle quel quei quegli ciò alcuno alcuna
        alcuni alcune nessuno nessuna ogni ognuno qualche qualcuno qualsiasi tutto tutta tutti tutte altro altra altri
        altre
        tale tali
        che chi cui quale quali quanto quanta quanti quante quando come dove perché cosa
        a ad al allo alla ai agli alle da dal dallo dalla dai dagli dalle di del dello della dei degli delle in nel
        nello nella nei negli nelle con col coi su sul sullo sulla sui sugli sulle per tra fra senza contro dopo durante
        fino oltre presso sopra sotto verso entro
        e ed o od oppure ma però anche ancora se mentre poiché affinché quindi dunque così già più meno molto non no
        sì né qui qua lì là poi solo soltanto
        essere sono sei è siamo siete era erano ero fu furono sarà saranno sarebbe sia siano essendo avere ho hai ha
        abbiamo avete hanno aveva avevano avrà abbia abbiano può possono poteva deve devono
        c d l m n s t v all dall dell nell sull quest quell dov cos
    """,
    "portuguese": """
        eu me mim comigo tu te ti contigo ele ela o a lhe se si consigo nós nos conosco vós vos eles elas os as lhes
        você vocês
        meu minha meus minhas teu tua teus tuas seu sua seus suas nosso nossa nossos nossas vosso vossa dele dela
        deles delas
        um uma uns umas este esta isto estes estas esse essa isso esses essas aquele aquela aquilo aqueles aquelas algum
        alguma alguns algumas nenhum nenhuma cada qualquer todo toda todos todas outro outra outros outras mesmo mesma
        mesmos mesmas tal tais
        que quê quem qual quais cujo cuja cujos cujas quanto quanta quantos quantas quando como onde aonde porquê
        ao aos à às ante após até com contra de do da dos das deste desta destes destas desse dessa desses dessas disto
        disso daquele daquela num numa desde durante em no na nas neste nesta nesse nessa naquele naquela entre para
        perante por pelo pela pelos pelas sem sob sobre segundo
        e ou mas nem porém porque pois embora enquanto então assim também já ainda só muito mais menos tão tanto não sim
        aqui ali lá
        ser sou és é somos são era eram foi fomos foram fosse seja sejam será serão seria sendo sido estou está
        estamos estão estava estavam estar ter tem têm tinha tinham haver há havia houve pode podem podia deve devem
    """,
    "dutch": """
        ik mij me jij je jou u hij hem zij ze haar het wij we ons jullie hun hen zich zichzelf men elkaar
        mijn jouw uw zijn onze
        de een deze dit die dat geen elk elke ieder iedere iemand iets niemand niets alle alles ander andere anderen
        enkele sommige zulke zelf zelfde zulk
        wie wat welk welke wiens waar waarom waarmee waarvan waarin waarbij wanneer hoe hoeveel
        aan achter af behalve bij binnen boven buiten door gedurende in langs met na naar naast om onder ondanks op
        over per rond sinds te tegen ten ter tijdens tot tussen uit van vanaf vanuit via volgens voor voorbij wegens
        zonder
        en of maar want dus omdat doordat indien als dan toen terwijl hoewel zodat zoals nadat voordat noch
        niet wel ook nog al reeds nu er daar hier daarna daarom daarbij toch zo zeer meer meest veel weinig alleen
        eens ja nee slechts echter
        ben bent is was waren geweest word wordt worden werd werden geworden heb hebt heeft hebben had hadden gehad
        kan kunt kunnen kon konden moet moeten moest moesten mag mogen mocht zal zult zullen zou zouden wil willen wilde
        s t n
    """,
    "russian": """
        я меня мне мной ты тебя тебе тобой он его него ему нему им ним нём она её неё ей ней ею нею оно мы нас нам
        нами вы вас вам вами они их них ими ними себя себе собой сам сама само сами
        мой моя моё мои моего моей моих моему моим твой твоя твоё твои наш наша наше наши нашего нашей наших ваш ваша
        ваше ваши вашего вашей ваших свой своя своё свои своего своей своих своему своим
        этот эта это эти этого этой этих этому этим этом тот та то те того той тех тому тем том такой такая такое такие
        такого таких таким весь вся всё все всего всей всех всему всем всеми каждый каждая каждое любой любая любое
        другой другая другое другие
        кто кого кому кем ком что чего чему чем чём какой какая какое какие какого каких каким который которая которое
        которые которого которой которых которым котором чей чья чьё чьи где куда откуда когда почему зачем как
        сколько ли
        в во на с со к ко у о об обо от до из за под над по при про без для между через перед после среди около кроме
        вокруг ради
        и а но или либо да же ж бы б если чтобы хотя потому поэтому также тоже так пока лишь только ни не нет уже ещё
        вот ведь даже там тут здесь туда сюда тогда теперь очень более менее
        быть был была было были буду будет будут есть является являются может могут можно нужно надо нельзя
    """,
    "swedish": """
        jag mig du dig han honom hon henne den det vi oss ni er de dem sig man själv
        min mitt mina din ditt dina hans hennes dess vår vårt våra ert era deras sin sitt sina
        en ett denna detta dessa någon något några ingen inget inga varje var vardera all allt alla annan annat andra
        samma sådan sådant sådana
        vad vem vems vilken vilket vilka hur när vart varifrån varför
        av bakom bland efter enligt framför från för före genom hos i inför innan inom kring med mellan mot omkring på
        sedan till trots under ur utan utom vid åt över
        och eller men samt att som om så än eftersom därför medan då fast
        inte ej icke också även bara redan ännu nu här där mer mest mycket ja nej
        är vara varit bli blir blev blivit har ha hade haft kan kunde kunnat ska skall skulle vill ville måste får
        fick bör borde
    """,
    "danish": """
        jeg mig du dig han ham hun hende den det vi os jer de dem sig man selv
        min mit mine din dit dine hans hendes dens dets vor vort vore vores jeres deres sin sit sine
        en et denne dette disse nogen noget nogle ingen intet hver hvert al alt alle anden andet andre samme sådan
        sådant sådanne
        hvad hvem hvis hvilken hvilket hvilke hvordan hvornår hvor hvorfor hvorfra hvorhen
        ad af bag blandt efter for foran fra før gennem hos i ifølge inden langs med mellem mod om omkring over på
        siden til trods uden under ved
        og eller men samt at som så end fordi derfor mens da når selvom
        ikke også kun allerede endnu nu her der mere mest meget ja nej
        er var været være bliver blive blev blevet har have havde haft kan kunne kunnet skal skulle vil ville må måtte
        bør burde får fik
    """,
    "norwegian": """
        jeg eg meg du deg han ham hun ho henne den det vi oss dere dykk de dei dem seg man selv sjølv
        min mitt mi mine din ditt di dine hans hennes dens dets vår vårt våre deres deira sin sitt si sine
        en ein ei et eit denne dette disse desse noen noe nokon noko nokre ingen intet hver hvert kvar all alt alle
        annen annet andre anna same samme slik slikt slike
        hva kva hvem kven hvilken hvilket hvilke hvordan korleis når hvor kor hvorfor kvifor
        av bak blant etter for foran fra frå før gjennom hos i ifølge innen langs med mellom mot om omkring over på
        siden sidan til tross under uten utan ved
        og eller men samt at som så enn fordi derfor mens da
        ikke ikkje også bare berre allerede ennå nå no her der mer meir mest mye mykje ja nei
        er var vært være vere blir bli ble blitt har ha hadde hatt kan kunne kunnet skal skulle vil ville må måtte bør
        burde får fikk
    """,
    "finnish": """
        minä minun minua minut minulla minulle sinä sinun sinua sinut sinulla sinulle hän hänen häntä hänet hänellä
        hänelle
        me meidän meitä meidät meillä meille te teidän teitä teidät teillä teille he heidän heitä heidät heillä heille
        se sen sitä siinä siitä siihen sillä sille siltä ne niiden niitä niissä niistä niihin niillä niille itse
        tämä tämän tätä tässä tästä tähän tällä tälle nämä näiden näitä näissä näistä näihin tuo tuon tuota tuossa nuo
        noiden noita
        joka jonka jota jossa josta johon jolla jolle jotka joiden joita joissa joista joihin joilla joille joku jokin
        jotkut jokainen jokaisen kaikki kaikkien kukaan mikään mitään muu muut muiden toinen
        kuka kenen ketä mikä minkä mitä mitkä missä mistä mihin millä mille milloin miten miksi kuinka kumpi millainen
        onko
        ennen ilman jälkeen kanssa kautta keskellä mukaan päällä varten vasten välillä yli ali alla asti kohti noin
        ja tai sekä eli vai että jotta jos kun koska vaikka kuin mutta vaan niin myös vielä jo nyt sitten siis vain
        hyvin kyllä
        ei en et emme ette eivät ole olen olet on olemme olette ovat olin oli olivat ollut olleet olla olisi olisivat
        lienee voi voivat voidaan voisi pitää täytyy
    """,
}
"""Snowball language -> its function words, as written, separated by blanks"""
